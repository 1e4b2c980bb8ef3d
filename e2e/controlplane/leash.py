"""Becomes another program after asking the kernel to kill it when its owner dies. A program of its own.

``python leash.py OWNER COMMAND…``: OWNER is the process number of who starts it. Linux only; elsewhere it just becomes
the command, and ``keeper`` does the rest. Started by ``process`` only. It is a program, and not something done between
fork and exec, since running Python there is unsafe where there are threads.
"""

import os
import sys

_PR_SET_PDEATHSIG = 1
_SIGKILL = 9

if __name__ == "__main__":
    owner, *command = sys.argv[1:]
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, _SIGKILL)
        if os.getppid() != int(owner):  # died before we asked
            raise SystemExit("the owner is gone")
    os.execv(command[0], command)
