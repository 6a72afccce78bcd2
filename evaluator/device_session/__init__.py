"""The state of a judge between requests on one device: pools of children, and children of recent Problems."""

from evaluator.device_session.session import DeviceSession

__all__ = ["DeviceSession"]
