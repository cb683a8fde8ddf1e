-- envbuild 0.1.0 for taurus-alpha
help(table.concat({
  "envbuild/0.1.0: deep-learning environments that prove their ranks can talk",
  "For site taurus-alpha: plans are made for it where no --site is given.",
  "",
  "  envbuild recipes list",
  "  envbuild plan RECIPE",
  "  envbuild create RECIPE --root DIR",
  "",
  "What is published for all users is in these module trees, which it brings into use:",
  "  /projects/envbuild/taurus-alpha/x86_64/modulefiles",
}, "\n"))
whatis("Name: envbuild")
whatis("Version: 0.1.0")
whatis("Category: deep learning environment")

if mode() == "load" and not isFile("/projects/envbuild/taurus-alpha/envbuild/0.1.0/bin/envbuild") then
  LmodError("envbuild: not installed in /projects/envbuild/taurus-alpha/envbuild/0.1.0: docs/rendering.md says how")
end
pushenv("ENVBUILD_SITE", "taurus-alpha")
prepend_path("MODULEPATH", "/projects/envbuild/taurus-alpha/x86_64/modulefiles")
prepend_path("PATH", "/projects/envbuild/taurus-alpha/envbuild/0.1.0/bin")
