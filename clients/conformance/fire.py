"""A worker that is killed: it streams, and pays once in a step, which it notes in a ledger outside."""

import os
import uuid

from flowfabric import Worker

worker = Worker(os.environ["URL"], concurrency=16, lease=2)


@worker.handler("fire-python")
async def fire(task, input):
    async def say(numbers):
        for i in numbers:
            await task.frame(f"{i} ")

    await task.step("first", say, range(10))

    def pay():
        token = str(uuid.uuid4())
        with open(os.environ["LEDGER"], "a") as ledger:
            ledger.write(f"{task.id} {token}\n")
        return token

    token = await task.step("pay", pay)
    await task.step("last", say, range(10, 20))
    return token


worker.run_blocking()
