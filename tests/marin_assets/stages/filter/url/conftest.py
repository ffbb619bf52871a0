import pytest
from small_url_lists import Filters


@pytest.fixture(scope="session")
def filters(tmp_path_factory: pytest.TempPathFactory) -> Filters:
    return Filters(tmp_path_factory.mktemp("url_lists"))
