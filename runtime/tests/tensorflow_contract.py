"""The contract of ``distributed_dl_training.tensorflow``, as an MPI program.

    mpiexec -n 2 python tensorflow_contract.py [NAME ...]

Each case runs in eager mode and, where TensorFlow has it, inside ``tf.function``; with
TensorFlow 1 in a session.
"""

import os
import sys
import time
from typing import Any, Callable, Dict, List

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf

import distributed_dl_training.tensorflow as hvd

CASES: Dict[str, Callable[[], None]] = {}


def case(function: Callable[[], None]) -> Callable[[], None]:
    CASES[function.__name__] = function
    return function


def values_of(build: Callable[[], Any]) -> List[Any]:
    """Return the results of ``build`` as arrays, in each mode of this TensorFlow."""
    if not tf.executing_eagerly():
        with tf.Graph().as_default(), tf.compat.v1.Session() as session:
            results = build()
            session.run(tf.compat.v1.global_variables_initializer())
            session.run(tf.compat.v1.local_variables_initializer())
            return [session.run(results)]
    to_arrays = lambda results: tf.nest.map_structure(lambda value: value.numpy(), results)  # noqa: E731
    return [to_arrays(build()), to_arrays(tf.function(build)())]


def rank_values(*shape: int, dtype: str = "float32") -> Any:
    """Return this rank's values: (rank + 1) times the values of rank 0."""
    count = int(np.prod(shape))
    return (np.arange(1, count + 1).reshape(shape) * (hvd.rank() + 1)).astype(dtype)


def ranks_sum() -> int:
    return hvd.size() * (hvd.size() + 1) // 2


def reduction(array: Any, **options: Any) -> Callable[[], Any]:
    return lambda: hvd.allreduce(tf.constant(array), **options)


@case
def reduces_tensors() -> None:
    base = np.arange(1, 7).reshape(2, 3)
    for dtype in ("float16", "float32", "float64", "int32", "int64", "uint8"):
        tensor = rank_values(2, 3, dtype=dtype)
        for output in values_of(reduction(tensor, op=hvd.Sum)):
            assert output.dtype == dtype and output.shape == (2, 3)
            np.testing.assert_array_equal(output, base * ranks_sum())
    for output in values_of(lambda: hvd.allreduce(tf.constant(rank_values(2, 3)))):
        np.testing.assert_allclose(output, base * ranks_sum() / hvd.size(), rtol=1e-6)
    for op, factor in ((hvd.Min, 1), (hvd.Max, hvd.size())):
        for output in values_of(reduction(rank_values(2, 3), op=op)):
            np.testing.assert_array_equal(output, base * factor)
    for output in values_of(
        lambda: hvd.allreduce(tf.constant(3.0), op=hvd.Sum, prescale_factor=2.0)
    ):
        assert output.shape == () and output == 6 * hvd.size()


@case
def reduces_groups_of_several_dtypes() -> None:
    def build() -> Any:
        tensors = [
            rank_values(3),
            rank_values(2, dtype="float64"),
            rank_values(4),
            rank_values(1, dtype="int32"),
        ]
        return hvd.grouped_allreduce([tf.constant(tensor) for tensor in tensors], op=hvd.Sum)

    for output in values_of(build):
        for array, length, dtype in zip(output, (3, 2, 4, 1), ("f4", "f8", "f4", "i4")):
            assert array.dtype == np.dtype(dtype)
            np.testing.assert_array_equal(array, np.arange(1, length + 1) * ranks_sum())


@case
def compresses_to_float16() -> None:
    def build() -> Any:
        return hvd.allreduce(
            tf.constant(rank_values(4)), compression=hvd.Compression.fp16, op=hvd.Sum
        )

    for output in values_of(build):
        assert output.dtype == np.float32
        np.testing.assert_array_equal(output, np.arange(1, 5) * ranks_sum())


@case
def gathers_rows() -> None:
    def build() -> Any:
        rows = np.full((hvd.rank() + 1, 2), hvd.rank(), dtype=np.float32)
        return hvd.allgather(tf.constant(rows)), hvd.grouped_allgather([tf.constant(rows)] * 2)

    expected = np.concatenate([np.full((rank + 1, 2), rank) for rank in range(hvd.size())])
    for single, group in values_of(build):
        for rows in (single, *group):
            np.testing.assert_array_equal(rows, expected)


@case
def broadcasts_from_last_rank() -> None:
    root = hvd.size() - 1
    for output in values_of(lambda: hvd.broadcast(tf.constant(rank_values(3)), root)):
        np.testing.assert_array_equal(output, np.arange(1, 4) * (root + 1))


@case
def exchanges_rows() -> None:
    size, rank = hvd.size(), hvd.rank()

    def build() -> Any:
        rows = tf.constant(np.repeat(np.arange(size) + 10 * rank, 2).astype(np.float32))
        return hvd.alltoall(rows, splits=tf.constant([2] * size)), hvd.alltoall(rows)

    expected = np.repeat(10 * np.arange(size) + rank, 2)
    for (rows, counts), plain in values_of(build):
        np.testing.assert_array_equal(rows, expected)
        np.testing.assert_array_equal(counts, [2] * size)
        np.testing.assert_array_equal(plain, expected)


@case
def scatters_rows() -> None:
    size, rank = hvd.size(), hvd.rank()

    def build() -> Any:
        tensor = tf.constant(rank_values(2 * size, 3))
        options = {"op": hvd.Sum}
        return hvd.reducescatter(tensor, **options), hvd.grouped_reducescatter([tensor], **options)

    expected = (
        np.arange(1, 6 * size + 1).reshape(2 * size, 3)[2 * rank : 2 * rank + 2] * ranks_sum()
    )
    for single, (member,) in values_of(build):
        np.testing.assert_array_equal(single, expected)
        np.testing.assert_array_equal(member, expected)


@case
def computes_gradients() -> None:
    size, rank = hvd.size(), hvd.rank()

    def gradient(collective: Callable[[Any], Any], rows: int) -> Callable[[], Any]:
        def build() -> Any:
            with tf.GradientTape() as tape:
                x = tf.constant(np.ones((rows, 2), dtype=np.float64))
                tape.watch(x)
                y = collective(x)
                loss = tf.reduce_sum(y * tf.cast(rank + 1, tf.float64))
            return tape.gradient(loss, x)

        return build

    cases = [
        (lambda x: hvd.allreduce(x, op=hvd.Sum), size, ranks_sum()),
        (lambda x: hvd.allreduce(x), size, ranks_sum() / size),
        (lambda x: hvd.allgather(x), rank + 1, ranks_sum() / size),
        (lambda x: hvd.broadcast(x, 0), 3, 0 if rank else ranks_sum() / size),
        (lambda x: hvd.alltoall(x, splits=[1] * size)[0], size, None),
        (lambda x: hvd.reducescatter(x, op=hvd.Sum), size, None),
    ]
    for number, (collective, rows, expected) in enumerate(cases):
        for output in values_of(gradient(collective, rows)):
            assert output.shape == (rows, 2), (number, output.shape)
            if expected is None:  # the gradient of row i comes from rank i
                factor = size if number == 5 else 1
                expected_rows = factor * np.arange(1, size + 1).reshape(size, 1) * np.ones((1, 2))
                np.testing.assert_allclose(output, expected_rows)
            else:
                np.testing.assert_allclose(output, np.full((rows, 2), float(expected)))


@case
def gathers_rows_of_slices() -> None:
    def build() -> Any:
        values = np.full((1, 2), hvd.rank() + 1.0, dtype=np.float32)
        slices = tf.IndexedSlices(
            tf.constant(values), tf.constant([hvd.rank()]), tf.constant([9, 2])
        )
        output = hvd.allreduce(slices, op=hvd.Sum)
        return output.values, output.indices

    for values, indices in values_of(build):
        np.testing.assert_array_equal(indices, np.arange(hvd.size()))
        np.testing.assert_array_equal(values[:, 0], np.arange(hvd.size()) + 1)


@case
def reduces_in_process_sets() -> None:
    if hvd.size() == 1:
        return
    process_set = hvd.add_process_set([0])
    if process_set.included():
        for output in values_of(
            lambda: hvd.allreduce(tf.constant(rank_values(3)), process_set=process_set)
        ):
            np.testing.assert_array_equal(output, [1, 2, 3])
    hvd.remove_process_set(process_set)


@case
def returns_ranks_as_tensors() -> None:
    for output in values_of(lambda: (hvd.rank_op(), hvd.size_op(), hvd.local_rank_op())):
        assert tuple(output) == (hvd.rank(), hvd.size(), hvd.local_rank())


@case
def moves_objects() -> None:
    assert hvd.broadcast_object({"rank": hvd.rank()}, 0) == {"rank": 0}
    assert hvd.allgather_object(hvd.rank()) == list(range(hvd.size()))


@case
def reduces_many_shapes() -> None:
    """Some lie where TensorFlow requires a copy, some are empty, and one is exchanged alone."""
    shapes = [(64,), (0, 3), (3,), (16, 4), (), (1 << 18,)]

    def build() -> Any:
        return hvd.grouped_allreduce([tf.constant(rank_values(*shape)) for shape in shapes])

    for output in values_of(build):
        for array, shape in zip(output, shapes):
            expected = np.arange(1, np.prod(shape, dtype=int) + 1).reshape(shape)
            assert array.shape == shape
            np.testing.assert_allclose(array, expected * ranks_sum() / hvd.size(), rtol=1e-6)


@case
def combines_by_adasum() -> None:
    if hvd.size() & (hvd.size() - 1):
        return  # for powers of two alone
    equal = [np.ones(3, dtype=np.float32), np.full((2, 4), 2.0, dtype=np.float32)]

    def build() -> Any:
        tensors = [tf.constant(array) for array in equal]
        single = hvd.allreduce(tensors[0], op=hvd.Adasum)
        return [single, *hvd.grouped_allreduce(tensors, op=hvd.Adasum)]

    for output in values_of(build):  # equal gradients are averaged
        for array, expected in zip(output, [equal[0], *equal]):
            np.testing.assert_allclose(array, expected, rtol=1e-6)


@case
def keeps_inputs() -> None:
    def build() -> Any:
        tensor = tf.identity(tf.constant(rank_values(5)))
        return tensor, hvd.allreduce(tensor, op=hvd.Sum), hvd.broadcast(tensor, 0)

    for tensor, total, root in values_of(build):
        np.testing.assert_array_equal(tensor, rank_values(5))
        np.testing.assert_array_equal(total, np.arange(1, 6) * ranks_sum())
        np.testing.assert_array_equal(root, np.arange(1, 6))


@case
def refuses_xla() -> None:
    if not tf.executing_eagerly() or not hasattr(tf, "raw_ops"):
        return  # TensorFlow 1 compiles no functions
    compiled = tf.function(lambda: hvd.allreduce(tf.ones(3)), jit_compile=True)
    try:
        compiled()
    except NotImplementedError as error:
        assert "jit_compile=False" in str(error), error
    else:
        raise AssertionError("XLA has compiled a collective")


@case
def reports_mismatches() -> None:
    try:
        values_of(lambda: hvd.allreduce(tf.constant(rank_values(2 + hvd.rank())), name="differs"))
    except (hvd.MismatchError, tf.errors.OpError) as error:
        assert "differs" in str(error), error
    else:
        assert hvd.size() == 1


@case
def cancels_what_is_under_way() -> None:
    """After an error nothing waits for a collective that other ranks do not ask for."""
    if hvd.size() == 1 or hvd.build_info()["tensorflow"] != "op":
        return
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        differs = hvd.allreduce(tf.ones(3 + hvd.rank()), name="differs")
        alone = hvd.grouped_allreduce([tf.ones(1 << 20), tf.ones(3)], name=f"of {hvd.rank()}")
        started = time.monotonic()
        try:
            session.run([differs, alone])
        except tf.errors.OpError as error:
            assert "MismatchError" in str(error), error
        assert time.monotonic() - started < 60
        np.testing.assert_array_equal(session.run(hvd.allreduce(tf.ones(3))), np.ones(3))


def main() -> None:
    hvd.init()
    for name in sys.argv[1:] or CASES:
        CASES[name]()
        hvd.barrier()
    sys.stdout.write(f"passed {len(sys.argv[1:] or CASES)} by {hvd.build_info()['tensorflow']}\n")


if __name__ == "__main__":
    main()
