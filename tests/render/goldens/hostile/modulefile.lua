-- Environment hostile, id 4d0871f5ff43, lock sha256 4d0871f5ff434c27f4c628f146b26cbc5b2a7f73c7163e0796d3881dad13aa27
help(table.concat({
  "hostile/3: $(touch CANARY) `touch CANARY` ${HOME} \"double\" 'single' ]] ]==] -- [exec touch CANARY] {open close} } { \\ \\n %PATH% !! #; & | < > * ? ~ é ü 漢字 🚀 \\",
  "For site local, x86_64. Environment 4d0871f5ff43.",
  "",
  "Components:",
  "  python@3.11.7 <- system:/usr/bin/python3.11",
  "  numpy@1.26.4 <- pip:numpy",
  "  mpich@5.0.2 <- pip:mpich",
  "  distributed-dl-training@0.1.0 <- built in this environment",
  "",
  "Waived advisories:",
  "  TEST-WAIVED: $(touch CANARY) `touch CANARY` ${HOME} \"double\" 'single' ]] ]==] -- [exec touch CANARY] {open close} } { \\ \\n %PATH% !! #; & | < > * ? ~ é ü 漢字 🚀 \\ (openmpi@3.1.4, nccl@2.3.7)",
  "    waived: $(touch CANARY) `touch CANARY` ${HOME} \"double\" 'single' ]] ]==] -- [exec touch CANARY] {open close} } { \\ \\n %PATH% !! #; & | < > * ? ~ é ü 漢字 🚀 \\",
  "    $(touch CANARY) `touch CANARY` ${HOME} \"double\" 'single' ]] ]==] -- [exec touch CANARY] {open close} } { \\ \\n %PATH% !! #; & | < > * ? ~ é ü 漢字 🚀 \\",
  "",
  "Known problems that a remedy solves:",
  "  TEST-LIFTED: $(touch CANARY) `touch CANARY` ${HOME} \"double\" 'single' ]] ]==] -- [exec touch CANARY] {open close} } { \\ \\n %PATH% !! #; & | < > * ? ~ é ü 漢字 🚀 \\ (openmpi@3.1.4, nccl@2.3.7)",
  "    lifted by $(touch CANARY) `touch CANARY` ${HOME} \"double\" 'single' ]] ]==] -- [exec touch CANARY] {open close} } { \\ \\n %PATH% !! #; & | < > * ? ~ é ü 漢字 🚀 \\",
  "    $(touch CANARY) `touch CANARY` ${HOME} \"double\" 'single' ]] ]==] -- [exec touch CANARY] {open close} } { \\ \\n %PATH% !! #; & | < > * ? ~ é ü 漢字 🚀 \\",
  "",
  "Known problems:",
  "  TEST-WARNING: $(touch CANARY) `touch CANARY` ${HOME} \"double\" 'single' ]] ]==] -- [exec touch CANARY] {open close} } { \\ \\n %PATH% !! #; & | < > * ? ~ é ü 漢字 🚀 \\ (openmpi@3.1.4, nccl@2.3.7)",
  "    fix: $(touch CANARY) `touch CANARY` ${HOME} \"double\" 'single' ]] ]==] -- [exec touch CANARY] {open close} } { \\ \\n %PATH% !! #; & | < > * ? ~ é ü 漢字 🚀 \\",
  "    $(touch CANARY) `touch CANARY` ${HOME} \"double\" 'single' ]] ]==] -- [exec touch CANARY] {open close} } { \\ \\n %PATH% !! #; & | < > * ? ~ é ü 漢字 🚀 \\",
  "",
  "Proved: several ranks, native, 2025-01-31T12:00:00Z",
  "  smoke test passed: 2 ranks in 12.3 s",
  "  site local, x86_64, nodes: node1",
  "  MPI: MPICH 5.0.2",
  "  libmpi: /software/mpich/lib/libmpi.so.12 (from prefix)",
  "  allreduce: 2 of 2 checks passed",
  "  broadcast: 1 of 1 checks passed",
  "",
  "Start a program on 2 ranks:",
  "  '/opt/m p'\"'\"'i/mpi$exec' '$(touch CANARY) `touch CANARY` ${HOME} \"double\" '\"'\"'single'\"'\"' ]] ]==] -- [exec touch CANARY] {open close} } { \\ \\n %PATH% !! #; & | < > * ? ~ é ü 漢字 🚀 \\' -n 2 python PROGRAM.py",
}, "\n"))
whatis("Name: hostile")
whatis("Version: 3")
whatis("Category: deep learning environment")
whatis("Description: $(touch CANARY) `touch CANARY` ${HOME} \"double\" 'single' ]] ]==] -- [exec touch CANARY] {open close} } { \\ \\n %PATH% !! #; & | < > * ? ~ é ü 漢字 🚀 \\")
whatis("Proved: several ranks, 2025-01-31T12:00:00Z")
whatis("Waived: TEST-WAIVED")

if mode() == "load" and myShellType() == "csh" then
  LmodError("hostile: load it in bash or zsh; module systems cannot escape ! { } for csh and tcsh in HOSTILE, PATH, VIRTUAL_ENV")
end

-- Two environments of envbuild exclude each other.
family("envbuild")
pushenv("VIRTUAL_ENV", "/software/a b 'single' \"double\" $HOME `touch CANARY` ]] {x} é/hostile/abc")
pushenv("PYTHONNOUSERSITE", "1")
prepend_path("PATH", "/software/a b 'single' \"double\" $HOME `touch CANARY` ]] {x} é/hostile/abc/bin")
pushenv("HOSTILE", "$(touch CANARY) `touch CANARY` ${HOME} \"double\" 'single' ]] ]==] -- [exec touch CANARY] {open close} } { \\ \\n %PATH% !! #; & | < > * ? ~ é ü 漢字 🚀 \\")
pushenv("EMPTY", "")
pushenv("SPACE", "  ")

if mode() == "load" and (os.getenv("PYTHONPATH") or "") ~= "" then
  LmodMessage("hostile: packages in PYTHONPATH come before this environment's own; unset PYTHONPATH")
end
