"""Serene: neural network training through the network, with synchronisation decided in the switch."""
