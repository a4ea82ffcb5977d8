"""What methods remember of the runs they observed; nothing here knows a method."""
