//! Reconcilers, Pod building, leader election, CRD printing
