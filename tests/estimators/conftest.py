from .support import releases

__all__ = ["releases"]
