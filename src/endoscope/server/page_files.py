"""The built page, as files. Nothing here needs numpy or pyarrow: it is there before the data can be read."""

from __future__ import annotations

import mimetypes
import stat
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

STATIC = Path(__file__).parent / "static"
_NOT_BUILT = """\
The page has not been built. In the folder of Endoscope's sources, type:  make page
Then load this page again. The data is served already, for instance at /api/catalog.
"""
_SMALL = 4 << 20  # bytes
_FOREVER = "public, max-age=31536000, immutable"  # names of built files change with their contents


class PageFiles(StaticFiles):
    """The built page; a sentence in its place while there is none. It may be built while the server runs."""

    def __init__(self, folder: Path) -> None:
        super().__init__(directory=folder, html=True, check_dir=False)
        self._folder = folder

    async def check_config(self) -> None:
        """A folder that is not there is no mistake: `get_response` says what to do."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        if path == "." and not (self._folder / "index.html").is_file():
            return PlainTextResponse(_NOT_BUILT, 503)
        if any(part.startswith(".") and part != "." for part in Path(path).parts):
            raise HTTPException(404)  # the stamp of the build
        answer = self._in_one_piece(path, scope) or await super().get_response(path, scope)
        is_hashed = path.startswith("assets/") and answer.status_code == 200
        answer.headers["Cache-Control"] = _FOREVER if is_hashed else "no-cache"
        return answer

    def _in_one_piece(self, path: str, scope: Scope) -> Response | None:
        """A file that the page is made of. Files in pieces wait for a thread at every piece, just while all begins."""
        found, facts = self.lookup_path("index.html" if path == "." else path)
        if facts is None or not stat.S_ISREG(facts.st_mode) or facts.st_size > _SMALL or scope["method"] != "GET":
            return None
        kind = mimetypes.guess_type(found)[0] or "application/octet-stream"
        return Response(Path(found).read_bytes(), media_type=kind)
