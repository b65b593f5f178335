"""The only place that touches tables: a small protocol, and one implementation per engine."""
