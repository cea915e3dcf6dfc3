from ._base import MarginClassifier

CLASSIFIERS: dict[str, type[MarginClassifier]]
__all__: list[str]

# One class for each machine of the core that has none of its own: LSSVMClassifier, SVRClassifier, …
def __getattr__(name: str) -> type[MarginClassifier]: ...
