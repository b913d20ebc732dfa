"""nystrom.linalg"""
