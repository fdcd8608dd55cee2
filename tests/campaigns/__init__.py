"""Campaigns of faults, kills, concurrent writers, slow clients, lost clusters, whole lives; the suite runs a share."""
