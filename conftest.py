"""Settings of this checkout only. The plug-in itself comes with the installed package (entry point ``aclnn_oracle``)."""

from __future__ import annotations

pytest_plugins = ["pytester"]
