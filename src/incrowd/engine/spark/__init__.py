"""Tables on a Spark cluster: what is counted there, what is drawn there, what comes here."""
