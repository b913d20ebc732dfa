"""nystrom.models"""
