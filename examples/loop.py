"""Softmax regression in NumPy whose gradients a switch adds up. No PyTorch, no root: each worker has a UDP port of an
embedded switch on this machine.

python examples/loop.py --worker 0    # also with 1 and 2, each in another terminal
"""

import argparse

import numpy as np
from sklearn.datasets import load_digits

from serene.client import Client, FrameTransport, Session

WORKERS, STEPS, BATCH, RATE = 3, 200, 32, 0.5


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--worker", type=int, required=True)
    worker = parser.parse_args().worker

    pictures, labels = load_digits(return_X_y=True)  # float64[1797, 64], int64[1797]
    pictures = pictures / 16
    parameters = np.zeros((64, 10), np.float32)
    random = np.random.default_rng(worker)

    def gradient() -> np.ndarray:
        """float32[640]: the cross-entropy's mean gradient over this worker's next batch."""
        chosen = random.integers(0, len(labels), BATCH)
        scores = pictures[chosen] @ parameters
        likely = np.exp(scores - scores.max(axis=1, keepdims=True))
        likely /= likely.sum(axis=1, keepdims=True)
        likely[np.arange(BATCH), labels[chosen]] -= 1
        return (pictures[chosen].T @ likely / BATCH).astype(np.float32).reshape(-1)

    def apply(delta: np.ndarray) -> None:
        """delta, float32[640]: the sum of all contributions since the last read."""
        parameters[:] -= RATE / WORKERS * delta.reshape(64, 10)

    # This worker's own port of the switch: 1@udp:50001:51001 is worker 0's.
    here, there = ("127.0.0.1", 51001 + worker), ("127.0.0.1", 50001 + worker)
    transport = FrameTransport(worker, local=here, switch=there)
    client = Client(transport, job=0, worker=worker, vector_length=parameters.size)
    with Session(client, apply) as session:
        session.join()  # waits until all workers of the job are there
        for step in range(1, STEPS + 1):
            session.exchange(gradient())  # contributes, waits as the strategy demands, and calls `apply`
            if step % 50 == 0:
                accuracy = ((pictures @ parameters).argmax(axis=1) == labels).mean()
                print(f"worker {worker}, step {step}: accuracy {accuracy:.3f}", flush=True)
        session.finish(timeout_s=60)  # leaves, and reads once more when all have left
    print(f"worker {worker}: sum of the parameters' squares {np.square(parameters).sum():.4f}")


if __name__ == "__main__":
    main()
