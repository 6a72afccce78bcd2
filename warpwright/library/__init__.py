"""Warpwright called from a program: `warpwright.optimize` and `@warpwright.kernel`.

torch is never imported here: whoever calls has it, and passes its objects.
"""
