-- envbuild 0.1.0 for summit
help(table.concat({
  "envbuild/0.1.0: deep-learning environments that prove their ranks can talk",
  "For site summit: plans are made for it where no --site is given.",
  "",
  "  envbuild recipes list",
  "  envbuild plan RECIPE",
  "  envbuild create RECIPE --root DIR",
  "",
  "What is published for all users is in these module trees, which it brings into use:",
  "  /ccs/proj/envbuild/summit/ppc64le/modulefiles",
}, "\n"))
whatis("Name: envbuild")
whatis("Version: 0.1.0")
whatis("Category: deep learning environment")

if mode() == "load" and not isFile("/ccs/proj/envbuild/summit/envbuild/0.1.0/bin/envbuild") then
  LmodError("envbuild: not installed in /ccs/proj/envbuild/summit/envbuild/0.1.0: docs/rendering.md says how")
end
pushenv("ENVBUILD_SITE", "summit")
prepend_path("MODULEPATH", "/ccs/proj/envbuild/summit/ppc64le/modulefiles")
prepend_path("PATH", "/ccs/proj/envbuild/summit/envbuild/0.1.0/bin")
