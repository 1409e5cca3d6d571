//! The HTTP side of the control plane: the channel that the runtimes talk to
