from pathlib import Path

from setuptools import find_packages, setup

HERE = Path(__file__).parent
face = (HERE / "odonata" / "__init__.py").read_text()
version = face.partition('__version__ = "')[2].partition('"')[0]

# colorama, because numba behaves differently where it is present; evalys, because it has to read
# our tables of jobs.
TEST = [
    "colorama",
    "evalys",
    "hypothesis",
    "import-linter",
    "mypy",
    "optuna",
    "pytest",
    "pytest-mpi",
    "pytest-xdist",
    "ruff",
]
MPI = ["mpi4py>=4", "mpich"]
DOCS = ["furo", "myst-parser>=4", "sphinx>=8", "sphinx-click>=6", "sphinx-copybutton"]

setup(
    name="odonata",
    version=version,
    description="A dragonfly supercomputer, simulated packet by packet on MPI, in Python",
    long_description=(HERE / "README.md").read_text(),
    long_description_content_type="text/markdown",
    license="BSD-3-Clause",
    license_files=["LICENSE"],
    packages=find_packages(
        include=[
            p for name in ("pdes", "topology", "policies", "odonata") for p in (name, f"{name}.*")
        ]
    ),
    package_data={
        "": ["py.typed"],
        "odonata": ["profiles/*.toml", "profiles/*/*.toml", "traces/data/*.csv"],
        "odonata.figures.report": ["*.html", "*.css"],
        "odonata.commands": ["*.json"],
    },
    python_requires=">=3.11",
    install_requires=[
        "click>=8",
        "cmaes>=0.10",
        "h5py>=3.10",
        "jinja2>=3.1",
        "matplotlib>=3.8",
        "networkx>=3",
        "numba>=0.60",
        "numpy>=1.26",
        "rich>=13",
        "scipy>=1.11",
        "tzdata",
        "xarray>=2024.7",
    ],
    extras_require={
        "docs": DOCS,
        "mpi": MPI,
        "optimise": ["optuna>=4"],
        "test": [*TEST, *MPI],
    },
    entry_points={"console_scripts": ["odonata = odonata.__main__:main"]},
    classifiers=[
        "Development Status :: 3 - Alpha",
        "Intended Audience :: Science/Research",
        "Operating System :: POSIX",
        "Programming Language :: Python :: 3",
        "Topic :: System :: Distributed Computing",
    ],
)
