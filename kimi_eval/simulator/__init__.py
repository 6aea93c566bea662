"""Simulator: a deployment that keeps the contract, on loopback, and the faults that can bend it."""

from kimi_eval.simulator.oracle import Oracle
from kimi_eval.simulator.server import SimulatedDeployment

__all__ = ["Oracle", "SimulatedDeployment"]
