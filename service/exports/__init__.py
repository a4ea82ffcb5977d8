"""Files that the history is exported to: CSV, Parquet and SWF."""
