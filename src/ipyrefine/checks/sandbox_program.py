"""The program that limits itself and then becomes Python running a script.

Limits set in a forked child of the kernel could deadlock on its threads, so a fresh interpreter
sets them and passes them on to the script by replacing itself.

It is run by path, without the rest of the package and on POSIX only. Its arguments are processor
seconds, wall seconds, bytes of memory, bytes of the largest file, and the script.
"""

import os
import resource
import signal
import sys

_NICE = 5  # a flood of processes must not keep the user's kernel from stopping it


def main() -> None:
    """Set the limits, then run the script in this process."""
    processor, wall, memory, file = (int(argument) for argument in sys.argv[1:5])
    _limit(resource.RLIMIT_CPU, processor)
    _limit(resource.RLIMIT_AS, memory)
    _limit(resource.RLIMIT_FSIZE, file)
    _limit(resource.RLIMIT_CORE, 0)
    # An alarm outlives the replacement: it ends the script even when the kernel is gone.
    signal.alarm(wall)
    os.nice(_NICE)
    os.execv(sys.executable, [sys.executable, "-I", "-X", "utf8", sys.argv[5]])


def _limit(which: int, most: int) -> None:
    hard = resource.getrlimit(which)[1]
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    try:
        resource.setrlimit(which, (most, most))
    except (OSError, ValueError):
        # macOS has the name of some limits but not the limit: the others still count.
        return


if __name__ == "__main__":
    main()
