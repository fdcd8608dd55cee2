import os
import signal
import subprocess
import sys
import threading
import time

import psutil
import pytest

from spacenet.utils.processes import Terminated, describe_interrupt, sigterm_kept, sigterm_raises

CHILD = """
import os, sys, time
from spacenet.utils.processes import end_with_parent
end_with_parent(os.getppid())
print(os.getpid(), flush=True)
time.sleep(60)
"""
PARENT = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]])"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_process_ends_soon_after_its_parent(number: signal.Signals) -> None:
    command = [sys.executable, "-c", PARENT, CHILD]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = psutil.Process(int(parent.stdout.readline()))
        try:
            time.sleep(0.1)
            assert child.is_running()
            parent.send_signal(number)
            psutil.wait_procs([child], timeout=5)
            assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE
        finally:
            if child.is_running():
                child.kill()


def terminate_this_process() -> None:
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(5)


def take_the_handler_away() -> None:
    with sigterm_kept():
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    terminate_this_process()


def test_sigterm_is_an_interrupt_and_the_old_handler_comes_back() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with sigterm_raises():
        pass
    assert signal.getsignal(signal.SIGTERM) is before
    with pytest.raises(KeyboardInterrupt) as caught, sigterm_raises():
        terminate_this_process()
    assert isinstance(caught.value, Terminated)
    assert describe_interrupt(caught.value) == describe_interrupt(KeyboardInterrupt()) == ("terminated", 143)
    with sigterm_raises():
        assert describe_interrupt(KeyboardInterrupt()) == ("interrupted", 130)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL  # so a second one ends the process


def test_a_library_does_not_take_the_handler_away() -> None:
    with pytest.raises(Terminated), sigterm_raises():
        take_the_handler_away()


def test_in_another_thread_nothing_is_changed() -> None:
    def use() -> None:
        with sigterm_raises(), sigterm_kept():
            seen.append(signal.getsignal(signal.SIGTERM))

    seen: list[object] = []
    before = signal.getsignal(signal.SIGTERM)
    thread = threading.Thread(target=use)
    thread.start()
    thread.join()
    assert seen == [before]
