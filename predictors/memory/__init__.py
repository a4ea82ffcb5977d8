"""What methods remember of the runs that they observed; nothing here knows a method."""
