"""Klusáček & Soysal 2020."""
