"""Safe releases: sample, generalise, drop what is rare; differentially private."""
