"""What every room stands on, and no more: arrays, columns, own files, child processes, progress, start-up.

Imports nothing of nddup but `errors` and `tables`.
"""
