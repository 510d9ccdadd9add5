"""The page inside of a notebook: a frame, where the browser can reach the port of the kernel's machine."""

from __future__ import annotations

import html
import os
import sys
from collections.abc import Mapping

from endoscope.errors import BadArgument

_HEIGHT = 720

#: Environment variables of services whose kernels run on another machine than the browser -> what the service is.
_ELSEWHERE = {
    "COLAB_RELEASE_TAG": "Google Colab",
    "KAGGLE_KERNEL_RUN_TYPE": "Kaggle",
    "JUPYTERHUB_SERVICE_PREFIX": "JupyterHub",
    "CODESPACES": "GitHub Codespaces",
    "SM_CURRENT_HOST": "SageMaker",
    "DATABRICKS_RUNTIME_VERSION": "Databricks",
    "SSH_CONNECTION": "a machine that is reached by ssh",
}


def why_not(environment: Mapping[str, str]) -> str:
    """Why a browser cannot reach a port of this machine; empty if it probably can."""
    found = next((service for name, service in _ELSEWHERE.items() if environment.get(name)), "")
    if not found:
        return ""
    return (
        f"The page cannot be embedded here: this kernel runs on {found}, and your browser cannot reach its ports. "
        "Save the trace or copy the recording to your own machine and show it there, or look at what needs no port: "
        "trace.to_html('trace.html'), endoscope report."
    )


def check_notebook() -> None:
    shell = sys.modules.get("IPython")
    if shell is None or shell.get_ipython() is None:
        raise BadArgument(
            "inline=True shows the page below the cell of a notebook, and this is none. Leave inline out, and open the "
            "address of the viewer."
        )


def embed(address: str) -> None:
    """Show the page below the cell, or say there why that is not possible."""
    from IPython.display import HTML, display

    display(HTML(shown(address, why_not(os.environ))))


def shown(address: str, reason: str) -> str:
    """The frame with its address, or the reason. A saved notebook keeps the words; the page ends with the kernel."""
    if reason:
        return f"<p>{html.escape(reason)}</p>"
    at = html.escape(address)
    return (
        f'<iframe src="{at}" width="100%" height="{_HEIGHT}" style="border: 1px solid #8886; border-radius: 6px" '
        'title="Endoscope"></iframe>'
        '<p style="font-size: 12px">If nothing is shown, your browser cannot reach this kernel, or it has ended. '
        f'Address: <a href="{at}" target="_blank">{at}</a></p>'
    )
