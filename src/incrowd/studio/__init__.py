"""The studio: a local web app in which a curator takes a file to a verified release."""
