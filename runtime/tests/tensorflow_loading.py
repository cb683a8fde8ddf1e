"""Load what ``tensorflow_saving.py`` has saved into FOLDER, where the runtime is not installed."""

import glob
import json
import os
import sys
import zipfile
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

sys.modules["distributed_dl_training"] = None  # type: ignore[assignment]
v1 = tf.compat.v1
FOLDER = sys.argv[1]
# By py-functions, and by the operation in C++.
REDUCTIONS = ("PyFunc", "DistributedDlCollective", "DistributedDlToken")
OUTPUTS = np.load(os.path.join(FOLDER, "outputs.npz"))


def assert_outputs(name: str, values: Any) -> None:
    np.testing.assert_allclose(values, OUTPUTS[name], rtol=1e-4, atol=1e-5)


def read_graph() -> Any:
    """Return the checkpoint's path and graph."""
    path = v1.train.latest_checkpoint(os.path.join(FOLDER, "session"))
    meta = v1.MetaGraphDef()
    with open(f"{path}.meta", "rb") as stream:
        meta.ParseFromString(stream.read())
    return path, meta


def freeze(path: str, meta: Any, outputs: Any) -> Any:
    """Return the graph of ``outputs`` alone, with the variables of a checkpoint as constants.

    This is the text of docs/inference.md.
    """
    saver = meta.saver_def
    names = [saver.restore_op_name, saver.save_tensor_name, saver.filename_tensor_name]
    keep = outputs + [name.split(":")[0] for name in names]
    with tf.Graph().as_default() as graph, v1.Session() as session:
        v1.import_graph_def(v1.graph_util.extract_sub_graph(meta.graph_def, keep), name="")
        v1.train.Saver(saver_def=saver).restore(session, path)
        return v1.graph_util.convert_variables_to_constants(session, graph.as_graph_def(), outputs)


def run(graph_def: Any, x: str, y: str) -> Any:
    with tf.Graph().as_default(), v1.Session() as session:
        v1.import_graph_def(graph_def, name="")
        return session.run(y, {x: OUTPUTS["inputs"]})


def is_refused(meta: Any) -> bool:
    """Tell whether TensorFlow lacks an operation of the graph."""
    try:
        with tf.Graph().as_default():
            v1.train.import_meta_graph(meta)
    except (KeyError, ValueError, tf.errors.NotFoundError):
        return True
    return False


def load_session() -> None:
    path, meta = read_graph()
    reductions = [node for node in meta.graph_def.node if node.op in REDUCTIONS]
    assert reductions
    if is_refused(meta):
        assert any(node.op.startswith("DistributedDl") for node in reductions)
    else:
        with tf.Graph().as_default(), v1.Session() as session:
            v1.train.import_meta_graph(meta).restore(session, path)
            values = session.run("output:0", {"input:0": OUTPUTS["inputs"]})
        assert_outputs("session", values)
    for node in reductions:
        node.op = "HorovodAllreduce"  # of a library that is not there
    assert is_refused(meta)
    graph_def = freeze(path, meta, ["output"])
    assert {node.op for node in graph_def.node} <= {"Const", "Identity", "MatMul", "Placeholder"}
    assert_outputs("session", run(graph_def, "input:0", "output:0"))


def load_exported() -> None:
    folder = os.path.join(FOLDER, "exported")
    if tf.executing_eagerly():
        function = tf.saved_model.load(folder).signatures["serving_default"]
        (values,) = function(tf.constant(OUTPUTS["inputs"])).values()
        assert_outputs("plain", values)
        return
    saved = saved_model_pb2.SavedModel()
    with open(os.path.join(folder, "saved_model.pb"), "rb") as stream:
        saved.ParseFromString(stream.read())
    (meta,) = saved.meta_graphs
    ports = meta.signature_def["serving_default"]
    x, y = ports.inputs["x"].name, ports.outputs["y"].name
    if not is_refused(meta):
        with tf.Graph().as_default(), v1.Session() as session:
            v1.saved_model.load(session, ["serve"], folder)
            assert_outputs("plain", session.run(y, {x: OUTPUTS["inputs"]}))
    variables = os.path.join(folder, "variables", "variables")
    graph_def = freeze(variables, meta, [y.split(":")[0]])
    assert_outputs("plain", run(graph_def, x, y))


def predict(path: str, **options: Any) -> Any:
    model = tf.keras.models.load_model(path, **options)
    return model.predict(OUTPUTS["inputs"], verbose=0)


def load_keras() -> None:
    (path,) = glob.glob(os.path.join(FOLDER, "plain.*"))
    model = tf.keras.models.load_model(path)
    assert_outputs("plain", model.predict(OUTPUTS["inputs"], verbose=0))
    optimizer = model.optimizer
    assert (type(optimizer).__name__, hasattr(optimizer, "_ddlt_reducer")) == ("Adam", False)


class SyncBatchNormalization(tf.keras.layers.BatchNormalization):
    """Stands for the layer of the runtime, by whose class Keras 3 finds the variables."""


def plain_layer(layer: Any) -> Any:
    """Return a new layer of Keras itself, with the configuration of ``layer``."""
    synchronized = isinstance(layer, SyncBatchNormalization)
    layer_class = tf.keras.layers.BatchNormalization if synchronized else type(layer)
    return layer_class.from_config(layer.get_config())


def load_synchronized() -> None:
    (path,) = glob.glob(os.path.join(FOLDER, "synchronized.*"))
    model = tf.keras.models.load_model(
        path, custom_objects={"SyncBatchNormalization": SyncBatchNormalization}
    )
    assert_outputs("synchronized", model.predict(OUTPUTS["inputs"], verbose=0))
    stripped = tf.keras.models.clone_model(model, clone_function=plain_layer)
    stripped.set_weights(model.get_weights())
    again = path.replace("synchronized", "normalized")
    stripped.save(again)
    assert_outputs("synchronized", predict(again))


def load_wrapped_optimizer() -> None:
    """The optimizer of a file has the class of another runtime; ``compile=False`` drops it."""
    (path,) = glob.glob(os.path.join(FOLDER, "plain.*"))
    wrapped = rename_optimizer(path, "DistributedAdam")
    try:
        tf.keras.models.load_model(wrapped)
    except (TypeError, ValueError):
        pass
    else:
        raise AssertionError("an unknown optimizer was loaded")
    model = tf.keras.models.load_model(wrapped, compile=False)
    again = os.path.join(FOLDER, "stripped" + os.path.splitext(path)[1])
    model.save(again)
    assert_outputs("plain", predict(again))


def rename_optimizer(path: str, class_name: str) -> str:
    """Return a copy of a Keras file whose optimizer has another class."""
    copy = path.replace("plain", "wrapped")
    if path.endswith(".h5"):
        import h5py

        with open(path, "rb") as source, open(copy, "wb") as target:
            target.write(source.read())
        with h5py.File(copy, "r+") as file:
            text = file.attrs["training_config"]
            config = json.loads(text.decode() if isinstance(text, bytes) else text)
            config["optimizer_config"]["class_name"] = class_name
            file.attrs["training_config"] = json.dumps(config).encode()
        return copy
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(copy, "w") as target:
        for name in source.namelist():
            content = source.read(name)
            if name == "config.json":
                config = json.loads(content.decode())
                optimizer = config["compile_config"]["optimizer"]
                optimizer.update(module="horovod._keras", class_name=class_name)
                content = json.dumps(config).encode()
            target.writestr(name, content)
    return copy


CASES = (load_session, load_exported, load_keras, load_synchronized, load_wrapped_optimizer)
for case in CASES:
    case()
sys.stdout.write(f"loaded {len(CASES)}\n")
