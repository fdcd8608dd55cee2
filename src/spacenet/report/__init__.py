"""What people look at: tables now, figures and pages later."""
