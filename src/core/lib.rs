//! Pure decisions: plans, settlement, leases, names, expressions; no clock, no client, no file system
