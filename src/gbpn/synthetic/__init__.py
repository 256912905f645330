"""Rooms and streets made from random numbers, with exact depth."""
