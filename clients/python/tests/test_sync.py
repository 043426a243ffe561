"""The client that blocks."""

import threading
import unittest

import base
from flowfabric import FlowFabricError, Worker
from flowfabric.sync import Client


class SyncTest(unittest.TestCase):
    def test_everything_blocks(self):
        worker = Worker(base.url(), drain=1, lease=3)

        @worker.handler("sync-echo")
        def echo(task, input):
            for i in range(3):
                task.frame(str(i))
            return input

        thread = threading.Thread(target=worker.run_blocking)
        thread.start()
        try:
            with Client(base.url()) as client:
                made = client.submit("sync-echo", [2**70])
                self.assertEqual(client.result(made["id"], within=20)["output"]["value"], [2**70])
                texts = [e["frame"]["text"] for e in client.tail(made["id"]) if e["kind"] == "frame"]
                self.assertEqual(texts, ["0", "1", "2"])
                for event in client.tail(made["id"]):
                    break
                self.assertIn(made["id"], [e["id"] for e in client.executions(kind="sync-echo", state="completed")])
                with self.assertRaises(FlowFabricError):
                    client.get("x")
        finally:
            worker.stop()
            thread.join(10)
        self.assertFalse(thread.is_alive())


if __name__ == "__main__":
    unittest.main()
