-- Environment allreduce-modules, id e41656b7e1fd, lock sha256 e41656b7e1fdf0e1a0c68b9e6065c369a7d454a0c5a892e629b0e51ae4503c3b
help(table.concat({
  "allreduce-modules/3: An allreduce over MPI, and nothing else",
  "For site cluster, x86_64. Environment e41656b7e1fd.",
  "",
  "Components:",
  "  python@3.11.7 <- system:/usr/bin/python3.11",
  "  numpy@1.26.4 <- pip:numpy",
  "  mpich@5.0.2 <- pip:mpich",
  "  distributed-dl-training@0.1.0 <- built in this environment",
  "",
  "Proved: nothing yet (tier rendered).",
  "",
  "Start a program on two ranks:",
  "  mpiexec -n 2 python PROGRAM.py",
  "",
  "Loads the site's modules:",
  "  Python/3.11.3-GCCcore-12.3.0",
  "  OpenMPI/4.1.4-GCC-12.2.0",
  "If one is unknown, first: module use",
  "  /apps/modules/all",
  "  /apps/modules/extra",
  "",
  "Loading replaces what its own modules bring:",
  "  GCCcore/12.3.0",
  "so unloading does not give back exactly what was loaded before: module reset,",
  "or a new shell, does.",
}, "\n"))
whatis("Name: allreduce-modules")
whatis("Version: 3")
whatis("Category: deep learning environment")
whatis("Description: An allreduce over MPI, and nothing else")
whatis("Proved: rendered, nothing was run")

-- Two environments of envbuild exclude each other.
family("envbuild")
depends_on("Python/3.11.3-GCCcore-12.3.0")
depends_on("OpenMPI/4.1.4-GCC-12.2.0")
pushenv("VIRTUAL_ENV", "/software/cluster/env/abc")
pushenv("PYTHONNOUSERSITE", "1")
prepend_path("PATH", "/software/cluster/env/abc/bin")
pushenv("OMP_NUM_THREADS", "1")
pushenv("PYTHONHOME", false)
append_path("MANPATH", "/software/cluster/env/abc/share/man")
