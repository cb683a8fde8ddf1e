-- envbuild 0.1.0 for debian-ppc64le
help(table.concat({
  "envbuild/0.1.0: deep-learning environments that prove their ranks can talk",
  "For site debian-ppc64le: plans are made for it where no --site is given.",
  "",
  "  envbuild recipes list",
  "  envbuild plan RECIPE",
  "  envbuild create RECIPE --root DIR",
  "",
  "What is published for all users is in these module trees, which it brings into use:",
  "  /opt/envbuild/debian-ppc64le/ppc64le/modulefiles",
}, "\n"))
whatis("Name: envbuild")
whatis("Version: 0.1.0")
whatis("Category: deep learning environment")

if mode() == "load" and not isFile("/opt/envbuild/debian-ppc64le/envbuild/0.1.0/bin/envbuild") then
  LmodError("envbuild: not installed in /opt/envbuild/debian-ppc64le/envbuild/0.1.0: docs/rendering.md says how")
end
pushenv("ENVBUILD_SITE", "debian-ppc64le")
prepend_path("MODULEPATH", "/opt/envbuild/debian-ppc64le/ppc64le/modulefiles")
prepend_path("PATH", "/opt/envbuild/debian-ppc64le/envbuild/0.1.0/bin")
