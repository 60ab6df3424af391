"""Processes in which untrusted code can harm neither the kernel nor the machine."""
