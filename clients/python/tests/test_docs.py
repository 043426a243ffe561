"""The examples of the pages, run as they are."""

import os
import re
import signal
import subprocess
import sys
import unittest
from pathlib import Path

import base

ROOT = Path(os.environ.get("FLOWFABRIC_PAGES", Path(__file__).parent.parent))


def examples(page):
    """The programs of a page, with the address of the server of the tests."""
    text = page.read_text(encoding="utf-8")
    found = re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)
    return [x.replace("http://127.0.0.1:8080", base.url()) for x in found]


class DocsTest(unittest.TestCase):
    def run_page(self, page, said):
        worker, *clients = examples(page)
        working = subprocess.Popen([sys.executable, "-c", worker])
        try:
            self.assertEqual(len(clients), len(said))
            for client, want in zip(clients, said):
                done = subprocess.run([sys.executable, "-c", client], capture_output=True, text=True, timeout=60)
                self.assertEqual((done.stdout, done.stderr, done.returncode), (want, "", 0))
            working.send_signal(signal.SIGTERM)
            self.assertEqual(working.wait(30), 0)
        finally:
            working.kill()
            working.wait()

    def test_readme(self):
        self.run_page(ROOT / "README.md", ["Once upon a time\nAbout a lighthouse\n"])

    def test_how_to(self):
        page = ROOT.parent.parent / "docs/how-to/python.md"
        self.run_page(page, ["Hello\n{'published': 'Hello'}\nQUIET\n400 invalid_input\n",
                             "STILL QUIET\ncompleted\ncompleted\n"])


if __name__ == "__main__":
    unittest.main()
