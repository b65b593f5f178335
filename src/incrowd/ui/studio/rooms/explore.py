"""stub"""
from starlette.routing import BaseRoute
def routes(studio) -> list[BaseRoute]:
    return []
