"""Settings of this checkout only. The plug-in comes with the installed package (entry point ``aclnn_oracle``)."""

from __future__ import annotations

pytest_plugins = ["pytester"]
