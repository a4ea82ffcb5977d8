"""Klusáček & Soysal 2020: conservative backfilling and named nodes."""
