# SPDX-License-Identifier: MIT
"""What the agent's features in Python share: how one refuses."""


class Refused(Exception):
    """Its text is a clause, which `probing` prints after "process PID: "."""
