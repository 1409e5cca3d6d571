"""Makes the image's libraries fit a sandbox: read-only root, bounded address space, an environment it cannot rely on.

Python imports this module at every start (`sandbox_defaults.pth`), so it does almost nothing until it is needed.
"""
import os
import sys

FONT_LIST = "/usr/local/share/matplotlib"  # made while the image is built

# Each OpenBLAS thread reserves address space, which is what a function's memory limit counts; by default there is
# one thread for every core of the node, whatever share of them the sandbox has.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def give_matplotlib_a_folder():
    """matplotlib uses a folder only if it can write there; else it warns and searches all fonts at every start."""
    import atexit
    import shutil
    import tempfile

    folder = tempfile.mkdtemp(prefix="matplotlib-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    shutil.copytree(FONT_LIST, folder, dirs_exist_ok=True)
    os.environ["MPLCONFIGDIR"] = folder


class BeforeMatplotlib:
    """First in `sys.meta_path`; finds nothing itself, and leaves when matplotlib is asked for."""

    def find_spec(self, name, _path=None, _target=None):
        if name != "matplotlib":
            return None
        sys.meta_path.remove(self)
        try:
            give_matplotlib_a_folder()
        except OSError:
            pass  # without a writable temp folder matplotlib says so itself, and better
        return None


if "MPLCONFIGDIR" not in os.environ:
    sys.meta_path.insert(0, BeforeMatplotlib())
