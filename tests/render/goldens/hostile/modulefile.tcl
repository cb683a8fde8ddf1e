#%Module1.0
# Environment hostile, id 4d0871f5ff43, lock sha256 4d0871f5ff434c27f4c628f146b26cbc5b2a7f73c7163e0796d3881dad13aa27
proc ModulesHelp {} {
  puts stderr "hostile/3: \$(touch CANARY) `touch CANARY` \$\{HOME\} \"double\" 'single' \]\] \]==\] -- \[exec touch CANARY\] \{open close\} \} \{ \\ \\n %PATH% !! #; & | < > * ? ~ é ü 漢字 🚀 \\"
  puts stderr "For site local, x86_64. Environment 4d0871f5ff43."
  puts stderr ""
  puts stderr "Components:"
  puts stderr "  python@3.11.7 <- system:/usr/bin/python3.11"
  puts stderr "  numpy@1.26.4 <- pip:numpy"
  puts stderr "  mpich@5.0.2 <- pip:mpich"
  puts stderr "  distributed-dl-training@0.1.0 <- built in this environment"
  puts stderr ""
  puts stderr "Waived advisories:"
  puts stderr "  TEST-WAIVED: \$(touch CANARY) `touch CANARY` \$\{HOME\} \"double\" 'single' \]\] \]==\] -- \[exec touch CANARY\] \{open close\} \} \{ \\ \\n %PATH% !! #; & | < > * ? ~ é ü 漢字 🚀 \\ (openmpi@3.1.4, nccl@2.3.7)"
  puts stderr "    waived: \$(touch CANARY) `touch CANARY` \$\{HOME\} \"double\" 'single' \]\] \]==\] -- \[exec touch CANARY\] \{open close\} \} \{ \\ \\n %PATH% !! #; & | < > * ? ~ é ü 漢字 🚀 \\"
  puts stderr "    \$(touch CANARY) `touch CANARY` \$\{HOME\} \"double\" 'single' \]\] \]==\] -- \[exec touch CANARY\] \{open close\} \} \{ \\ \\n %PATH% !! #; & | < > * ? ~ é ü 漢字 🚀 \\"
  puts stderr ""
  puts stderr "Known problems that a remedy solves:"
  puts stderr "  TEST-LIFTED: \$(touch CANARY) `touch CANARY` \$\{HOME\} \"double\" 'single' \]\] \]==\] -- \[exec touch CANARY\] \{open close\} \} \{ \\ \\n %PATH% !! #; & | < > * ? ~ é ü 漢字 🚀 \\ (openmpi@3.1.4, nccl@2.3.7)"
  puts stderr "    lifted by \$(touch CANARY) `touch CANARY` \$\{HOME\} \"double\" 'single' \]\] \]==\] -- \[exec touch CANARY\] \{open close\} \} \{ \\ \\n %PATH% !! #; & | < > * ? ~ é ü 漢字 🚀 \\"
  puts stderr "    \$(touch CANARY) `touch CANARY` \$\{HOME\} \"double\" 'single' \]\] \]==\] -- \[exec touch CANARY\] \{open close\} \} \{ \\ \\n %PATH% !! #; & | < > * ? ~ é ü 漢字 🚀 \\"
  puts stderr ""
  puts stderr "Known problems:"
  puts stderr "  TEST-WARNING: \$(touch CANARY) `touch CANARY` \$\{HOME\} \"double\" 'single' \]\] \]==\] -- \[exec touch CANARY\] \{open close\} \} \{ \\ \\n %PATH% !! #; & | < > * ? ~ é ü 漢字 🚀 \\ (openmpi@3.1.4, nccl@2.3.7)"
  puts stderr "    fix: \$(touch CANARY) `touch CANARY` \$\{HOME\} \"double\" 'single' \]\] \]==\] -- \[exec touch CANARY\] \{open close\} \} \{ \\ \\n %PATH% !! #; & | < > * ? ~ é ü 漢字 🚀 \\"
  puts stderr "    \$(touch CANARY) `touch CANARY` \$\{HOME\} \"double\" 'single' \]\] \]==\] -- \[exec touch CANARY\] \{open close\} \} \{ \\ \\n %PATH% !! #; & | < > * ? ~ é ü 漢字 🚀 \\"
  puts stderr ""
  puts stderr "Proved: several ranks, native, 2025-01-31T12:00:00Z"
  puts stderr "  smoke test passed: 2 ranks in 12.3 s"
  puts stderr "  site local, x86_64, nodes: node1"
  puts stderr "  MPI: MPICH 5.0.2"
  puts stderr "  libmpi: /software/mpich/lib/libmpi.so.12 (from prefix)"
  puts stderr "  allreduce: 2 of 2 checks passed"
  puts stderr "  broadcast: 1 of 1 checks passed"
  puts stderr ""
  puts stderr "Start a program on 2 ranks:"
  puts stderr "  '/opt/m p'\"'\"'i/mpi\$exec' '\$(touch CANARY) `touch CANARY` \$\{HOME\} \"double\" '\"'\"'single'\"'\"' \]\] \]==\] -- \[exec touch CANARY\] \{open close\} \} \{ \\ \\n %PATH% !! #; & | < > * ? ~ é ü 漢字 🚀 \\' -n 2 python PROGRAM.py"
}
module-whatis "Name: hostile"
module-whatis "Version: 3"
module-whatis "Category: deep learning environment"
module-whatis "Description: \$(touch CANARY) `touch CANARY` \$\{HOME\} \"double\" 'single' \]\] \]==\] -- \[exec touch CANARY\] \{open close\} \} \{ \\ \\n %PATH% !! #; & | < > * ? ~ é ü 漢字 🚀 \\"
module-whatis "Proved: several ranks, 2025-01-31T12:00:00Z"
module-whatis "Waived: TEST-WAIVED"

if {[module-info mode load] && [module-info shelltype] eq "csh"} {
  puts stderr "hostile: load it in bash or zsh; module systems cannot escape \[ \] \{ \} ~ for csh and tcsh in HOSTILE, PATH, VIRTUAL_ENV"
  break
}

# Module systems before Environment Modules 5.1 know neither family nor pushenv and depends-on. With
# them, the module conflicts only with itself, and unloading unsets earlier values. A family also
# reserves a module name: the family envbuild is that of the tool.
if {[info commands family] ne ""} {
  family envbuild_environment
} else {
  conflict "hostile"
}
if {[info commands pushenv] eq ""} {
  interp alias {} pushenv {} setenv
}
if {[info commands depends-on] eq ""} {
  interp alias {} depends-on {} prereq
}

pushenv VIRTUAL_ENV "/software/a b 'single' \"double\" \$HOME `touch CANARY` \]\] \{x\} é/hostile/abc"
pushenv PYTHONNOUSERSITE "1"
prepend-path PATH "/software/a b 'single' \"double\" \$HOME `touch CANARY` \]\] \{x\} é/hostile/abc/bin"
pushenv HOSTILE "\$(touch CANARY) `touch CANARY` \$\{HOME\} \"double\" 'single' \]\] \]==\] -- \[exec touch CANARY\] \{open close\} \} \{ \\ \\n %PATH% !! #; & | < > * ? ~ é ü 漢字 🚀 \\"
pushenv EMPTY ""
pushenv SPACE "  "

if {[module-info mode load] && [info exists env(PYTHONPATH)] && $env(PYTHONPATH) ne ""} {
  puts stderr "hostile: packages in PYTHONPATH come before this environment's own; unset PYTHONPATH"
}
