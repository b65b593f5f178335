"""Safe releases: sample, generalize, drop what is rare; differentially private."""
