"""`compiled`, which compiles every kernel of the package, and keeps the machine code.

    compiled, is_compiled        a function of NumPy arrays and numbers -> machine code; whether the disk cache has it
    Written                      an array that a kernel changes
    KernelCache, digest_sources  the folders of that cache; the digest in the name of a kernel
    drop_events                  what a process that compiles kernels, and does nothing else, is spared

`compiled` turns a kernel into machine code at its first call and keeps the result on disk, so only the first process of
an installation waits for it (0.1 to 2 s per kernel). If the folder of the package is not writable, numba uses the
user's cache folder. Set NUMBA_CACHE_DIR on a cluster whose workers have neither. Only this file knows private parts of
numba; those of one release it does without under another.
"""

import hashlib
import os
import pickle
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import cache, cached_property, partial
from pathlib import Path
from secrets import token_hex
from types import ModuleType
from typing import Annotated, Any, ParamSpec, TypeAlias, TypeVar, cast, get_origin

import numba
import numpy as np
from numba import config, types
from numba.core import caching, codegen, environment, event
from numba.core.compiler_lock import global_compiler_lock
from numba.core.runtime.nrt import rtsys
from numpy.typing import NDArray

from nddup.ground.own_files import KernelFolder, open_own
from nddup.ground.start_up import KERNELS, kernel_folders

OfNumba: TypeAlias = Any
"""An object of numba, which has no types."""

_arrays: dict[int, tuple[NDArray[Any], str]] = {}

IS_KNOWN = numba.__version__.startswith("0.68.")
"""Whether this is the release of numba whose private parts `KernelCache` knows: a kernel put together wrongly would end
the process. Kernels of another release are loaded by numba itself, which takes longer."""

_said: list[str] = []

P = ParamSpec("P")

R = TypeVar("R")
Number = TypeVar("Number", bound=np.generic)

Written = Annotated[NDArray[Number], "written"]
"""An array that a kernel changes. All others are read-only to it: numba compiles no kernel that writes to them."""


def _leave_folder_settings_out() -> None:
    """Keep numba to its settings in the environment.

    It also reads `.numba_config.yaml` of the current folder, which may hold anybody's files, and takes from it the
    folder of compiled kernels, which it would execute.
    """
    name = config._config_fname  # noqa: SLF001 - numba has no switch
    config._config_fname = os.devnull  # noqa: SLF001
    if os.path.exists(name):  # noqa: PTH110 - relative, as numba reads it
        config.reload_config()  # type: ignore[no-untyped-call]


_leave_folder_settings_out()


@cache
def digest_sources(module: str) -> str:
    """Return a digest of the sources that the kernels of a module are compiled from, 16 hexadecimal digits.

    To decide whether a cached kernel is current, numba looks at the kernel's own file only. But a kernel is compiled
    together with the functions it calls and the constants of other modules, so after a change of only those numba would
    run the old code. So the name of a cached kernel holds a digest of its module, of the constants that the module
    imports, and of the modules from which it takes kernels and types. A kernel compiled from other sources is not found
    under that name, so it is compiled again.

    It is computed at the first kernel of a module, when all imports above it are done. A module without kernels is
    loaded completely before the modules that import it.
    """
    loaded = sys.modules[module]
    source = loaded.__loader__.get_data(loaded.__file__)  # type: ignore[union-attr]  # also in a zip archive
    names = sorted(name for name in vars(loaded) if not name.startswith("__"))
    taken = "".join(f"{name} {_digest_value(vars(loaded)[name], module)}\n" for name in names)
    return hashlib.sha256(source + taken.encode()).hexdigest()[:16]


def _digest_value(value: OfNumba, module: str) -> str:
    """Return text that identifies a value of a module as a kernel is compiled with it; empty if no kernel uses it."""
    package = module.partition(".")[0]
    if isinstance(value, bool | int | float | str | bytes | tuple | np.generic):
        return repr(value)
    if isinstance(value, np.ndarray):
        return _digest_array(value)

    is_seen = hasattr(value, "py_func") or hasattr(value, "_fields") or isinstance(value, ModuleType)
    origin = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", "")
    return digest_sources(origin) if is_seen and origin != module and origin.startswith(f"{package}.") else ""


def _digest_array(array: NDArray[Any]) -> str:
    """Return the digest of a constant; several modules share the largest."""
    if id(array) not in _arrays:
        _arrays[id(array)] = array, hashlib.sha256(np.ascontiguousarray(array).data).hexdigest()
    return _arrays[id(array)][1]


class KernelCache(caching.FunctionCache):
    """The folders that may hold a compiled kernel: all are read; a new one goes to the first that can be written.

    They are those of `kernel_folders`. So kernels that were compiled at the installation serve everyone, also where
    only its owner can write. A kernel is executed, so folders and files that another user could have written are passed
    over. Where none can be written, or none has room, each process compiles for itself, and the first kernel says so on
    standard error.

    A kernel that other kernels call is stored for them too, as bitcode; `form` tells the two apart.

    From the disk a kernel is loaded without what numba needs only to compile one: the modules of numba that a compiler
    needs, and those of its own functions that the kernel calls. That is 0.3 s of a short command.
    """

    def __init__(self, function: Callable[..., Any], *form: str) -> None:
        self._function, self._form = function, form
        digest_sources(function.__module__)  # now: constants may be changed for a test later

    @cached_property
    def _files(self) -> Sequence["_CodeFile"]:
        """The kernel's files in each folder; found at its first call, since most kernels are not called."""
        with kept_by_sources():
            super().__init__(self._function)  # type: ignore[no-untyped-call]
        self._place = self._impl.locator
        name, stamp = self._impl.filename_base, self._place.get_source_stamp()
        folders = [folder for folder in self._place.folders if not _stranger(folder)]
        return [_CodeFile(folder, name, stamp) for folder in folders]

    @property
    def cache_path(self) -> str:
        """The first folder that holds the kernel for some types of arguments; if none does, the first of all."""
        holding: list[str] = [file._cache_path for file in self._files if os.path.exists(file._index_path)]  # noqa: PTH110, SLF001
        return holding[0] if holding else str(self._place.folder)

    def _index_key(self, sig: OfNumba, target: OfNumba) -> OfNumba:
        return (*super()._index_key(sig, target), *self._form)  # type: ignore[no-untyped-call]

    def load_overload(self, sig: OfNumba, target_context: OfNumba) -> OfNumba:
        """Return the machine code for argument types `sig`; None if no folder holds it, or only damaged files."""
        rtsys.initialize(target_context) if IS_KNOWN else target_context.refresh()  # kernels allocate arrays
        for file in self._files:
            self._cache_file = file
            with suppress(Exception):  # unpickling what is damaged may raise anything
                overload = file.load(self._index_key(sig, target_context.codegen()))  # type: ignore[no-untyped-call]
                if overload is not None:
                    return (self._rebuild if IS_KNOWN else self._impl.rebuild)(target_context, overload)
        return None

    def _rebuild(self, target_context: OfNumba, overload: OfNumba) -> OfNumba:
        """Take over the machine code of a kernel, or its bitcode."""
        described = overload[1]
        target_context.codegen()._engine._defined_symbols |= {  # noqa: SLF001 - numba would look for them in the bitcode
            described.llvm_func_name, described.llvm_cpython_wrapper_name,
        }  # fmt: skip
        return self._impl.rebuild(target_context, overload)

    def save_overload(self, sig: OfNumba, data: OfNumba) -> None:
        """Write machine code to the first folder that can be written."""
        failed = [f"{folder.path} ({why})" for folder in self._place.folders if (why := _stranger(folder))]
        passed_over = "; ".join(failed)
        for file in self._files:
            self._place.folder, self._cache_file = file.folder.path, file
            try:
                file.folder.make()
                self._begin_anew_if_damaged()
                self._save_overload(sig, data)  # type: ignore[no-untyped-call]
            except OSError as error:
                failed.append(f"{file.folder.path} ({error.strerror})")
            else:
                if passed_over:
                    say_once(f"compiled kernels that others could have written are not used: {passed_over}")
                return
        say_once(
            "compiled kernels cannot be kept, so each process compiles them again, for about a minute; "
            f"NUMBA_CACHE_DIR names a folder for them. Not written: {'; '.join(failed)}"
        )

    def _begin_anew_if_damaged(self) -> None:
        """Empty the list of stored code if it cannot be read, or is another user's."""
        try:
            self._cache_file._load_index()  # type: ignore[no-untyped-call] # noqa: SLF001
        except Exception:  # noqa: BLE001 - as in `load_overload`
            self._cache_file.flush()  # type: ignore[no-untyped-call]


class _Linked(codegen.JITCodeLibrary):
    """A kernel for those that call it: bitcode, of which no machine code is made.

    Numba would generate its code, and do so again in each kernel that calls it.
    """

    def _optimize_final_module(self) -> None:
        """Optimise as numba does; but of its own functions, only inline, and drop counts of references.

        What is left to the kernels that call ours makes some of them a quarter slower: LLVM inlines other functions.
        """
        if any(function.name.startswith("_ZN5numba") for function in self._own_functions()):
            least = {"loop_vectorize": False, "slp_vectorize": False, "opt": 0, "cost": "cheap"}
            passes, options = self._codegen._module_pass_manager(**least)  # type: ignore[no-untyped-call] # noqa: SLF001
            passes.run(self._final_module, options)
        else:
            super()._optimize_final_module()  # type: ignore[no-untyped-call]

    def _own_functions(self) -> Iterator[OfNumba]:
        """Yield the functions that were not linked from another kernel."""
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage.name == "external":
                yield function

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()  # type: ignore[no-untyped-call]
        self._verify_declare_only_symbols()  # type: ignore[no-untyped-call]
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Return 0: Python cannot call it."""
        del name
        self._ensure_finalized()  # type: ignore[no-untyped-call]
        return 0

    @property
    def codegen(self) -> "_Linked":
        """What receives the constants of the kernel: those that it is linked into do."""
        return self

    def set_env(self, name: str, constants: OfNumba) -> None:
        """Set no constants."""

    def serialize_using_object_code(self) -> OfNumba:
        """Return what is stored on disk."""
        return self.serialize_using_bitcode()  # type: ignore[no-untyped-call]


class _Called(codegen.JITCodeLibrary):
    """A kernel for Python: machine code of it and of all kernels that it calls."""

    def serialize_using_object_code(self) -> OfNumba:
        """Return what is stored on disk, without bitcode: no kernel calls this one."""
        self._ensure_finalized()  # type: ignore[no-untyped-call]
        return self.name, "object", (self._get_compiled_object(), _no_bitcode())  # type: ignore[no-untyped-call]


@cache
def _no_bitcode() -> bytes:
    return cast("bytes", codegen.ll.parse_assembly("").as_bitcode())  # type: ignore[attr-defined]


def _link(inner: OfNumba, arguments: OfNumba) -> OfNumba:
    """Compile a kernel for Python: what `inner` makes of it for other kernels, and a function that unpacks arguments.

    Numba calls this while it holds its lock, so other threads compile nothing.
    """
    inner.targetctx.refresh()  # `inner` may come from the disk, and then nothing was compiled before
    context = inner.targetctx.subtarget(enable_nrt=True)
    target = context.codegen()
    before, target._library_class = target._library_class, _Linked  # noqa: SLF001
    try:
        inner.compile(arguments)
    finally:
        target._library_class = before  # noqa: SLF001
    linked = inner.overloads[arguments]
    library: Any = _Called(target, linked.fndesc.qualname)  # type: ignore[no-untyped-call]
    library.enable_object_caching()
    context.create_cpython_wrapper(library, linked.fndesc, linked.environment, None, release_gil=True)
    library.add_linking_library(linked.library)
    entry = context.get_executable(library, linked.fndesc, linked.environment)
    called = linked._replace(library=library, entry_point=entry, metadata={})
    for constants in called._find_referenced_environments():  # noqa: SLF001
        target.set_env(constants.env_name, constants)
    return called


@cache
def _stranger(folder: KernelFolder) -> str:
    return folder.stranger()


class _CodeFile(caching.IndexDataCacheFile):
    """The files of a kernel in one folder: read if no other user can have written them, and written for this one."""

    def __init__(self, folder: KernelFolder, name: str, stamp: object) -> None:
        super().__init__(folder.path, name, stamp)  # type: ignore[no-untyped-call]
        self.folder = folder

    def _load_index(self) -> OfNumba:
        """As numba's, of a file that is ours; a foreign one is as a damaged one."""
        try:
            with open_own(self._index_path, beside=self.folder.above) as file:
                version = pickle.load(file)  # noqa: S301 - compiled by this installation
                stamp, index = pickle.load(file) if version == self._version else (None, {})  # noqa: S301
        except FileNotFoundError:
            return {}
        return index if stamp == self._source_stamp else {}

    def _load_data(self, name: str) -> OfNumba:
        with open_own(self._data_path(name), beside=self.folder.above) as file:  # type: ignore[no-untyped-call]
            return _Unpickler(file).load() if IS_KNOWN else pickle.load(file)  # noqa: S301 - compiled by this installation

    @contextmanager
    def _open_for_write(self, filepath: str) -> Iterator[Any]:
        """As numba's; but nobody else may write the file, whatever the umask."""
        draft = f"{filepath}.tmp.{token_hex(8)}"
        try:
            with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644), "wb") as file:
                yield file
            os.replace(draft, filepath)  # noqa: PTH105 - of strings
        except BaseException:
            with suppress(OSError):
                os.unlink(draft)  # noqa: PTH108
            raise


class _Unpickler(pickle.Unpickler):
    """Reads a kernel without loading the modules of numba's own functions that it calls."""

    def find_class(self, module: str, name: str, /) -> OfNumba:
        """As of `pickle`."""
        return _rebuild_environment if name == "_rebuild_env" else super().find_class(module, name)


def _rebuild_environment(module: str, constants: list[Any], name: str) -> OfNumba:
    """Return the constants of a function that a kernel calls; machine code asks for no other value of its module."""
    known = environment.lookup_environment(name)  # type: ignore[no-untyped-call]
    if known is None and (module in sys.modules or not module.startswith("numba.")):
        return environment._rebuild_env(module, constants, name)  # type: ignore[no-untyped-call] # noqa: SLF001
    if known is None:
        known = environment.Environment({"__name__": module})
        known.env_name = name
        environment.Environment._memo[name] = known  # noqa: SLF001
    if len(known.consts) < len(constants):  # a kernel for Python has more than the same one for kernels
        known.consts[:] = constants
    return known


def say_once(line: str) -> None:
    """Warn on standard error, once, where compiled kernels are not stored or not taken from."""
    if not _said:
        _said.append(line)
        sys.stderr.write(f"nddup: {line}\n")


def suppress_cache_warning() -> None:
    """Suppress the warning that kernels cannot be cached: the parent process prints it."""
    _said.append("")


def drop_events() -> None:
    """Let numba report none of its locks and passes, which nobody measures."""
    if IS_KNOWN:
        event.start_event = event.end_event = lambda *_, **__: None
        event.trigger_event = event.install_timer = lambda *_, **__: nullcontext()  # type: ignore[assignment]


@contextmanager
def kept_by_sources() -> Iterator[None]:
    """Let numba find kernels as `_BySources` says inside the context; other users of numba are unaffected."""
    before = config.CACHE_LOCATOR_CLASSES  # type: ignore[attr-defined]
    config.CACHE_LOCATOR_CLASSES = f"{__name__}.{_BySources.__name__}"  # type: ignore[attr-defined]
    try:
        yield
    finally:
        config.CACHE_LOCATOR_CLASSES = before  # type: ignore[attr-defined]


@cache
def _list_folders(file: str, given: str) -> list[KernelFolder]:
    """Return the folders for kernels of a source file, with `given` in NUMBA_CACHE_DIR; the same objects each time."""
    del given
    return kernel_folders(file, caching._CacheLocator.get_suitable_cache_subpath(file))  # type: ignore[no-untyped-call] # noqa: SLF001


class _BySources(caching.InTreeCacheLocator):
    """Names the folders of a source file's kernels, and the sources in the name of each kernel."""

    def __init__(self, function: OfNumba, file: str) -> None:
        super().__init__(function, file)  # type: ignore[no-untyped-call]
        self._digest = digest_sources(function.__module__)
        self.folders = _list_folders(file, os.environ.get(KERNELS, ""))
        self.folder = self.folders[0].path

    @classmethod
    def from_function(cls, py_func: OfNumba, py_file: str) -> OfNumba:
        """Return a locator: it applies to every kernel, and writes nothing."""
        return cls(py_func, py_file)

    def get_cache_path(self) -> str:
        """Return the folder that is written."""
        return self.folder

    def get_source_stamp(self) -> object:
        """Return numba's stamp of the source file, or the digest where it is in a zip archive."""
        try:
            return super().get_source_stamp()  # type: ignore[no-untyped-call]
        except OSError:
            return self._digest

    def get_disambiguator(self) -> str:
        """Return the part of a file name that distinguishes kernels of one name."""
        return f"{super().get_disambiguator()}-{self._digest}"  # type: ignore[no-untyped-call]


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function with numba, cached on disk; it runs without the interpreter's lock.

    Numba compiles a function once for each combination of types. To a kernel, an array is read-only unless the kernel
    or the named tuple that holds it declares it as `Written`, and a signed number has 64 bits: so a buffer of Arrow's,
    a mapped file and an array of NumPy's are of one type, which is compiled at the installation.
    """
    kernel: Any = numba.njit(nogil=True)(function)
    kernel._cache = KernelCache(function)  # noqa: SLF001 - `njit(cache=True)` would set numba's own
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    writes = [True for _ in names]
    find = kernel.get_call_template
    if IS_KNOWN:
        writes = [_is_written(function.__annotations__.get(name)) for name in names]
        inner = cache(partial(_for_kernels, function))
        kernel._compiler.compile = lambda arguments, _: _link(inner(), arguments)  # noqa: SLF001
        kernel.get_overload = lambda signature: inner().get_overload(signature)
        _accept_unsettled(kernel, writes)
        find = lambda *arguments: inner().get_call_template(*arguments)  # noqa: E731
    kernel.get_call_template = partial(_find_settled, find, writes)
    return cast("Callable[P, R]", kernel)


def _for_kernels(function: Callable[..., Any]) -> OfNumba:
    options: dict[str, Any] = {"nogil": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    kernel = numba.njit(**options)(function)
    kernel._cache = KernelCache(function, "linked")  # noqa: SLF001
    return kernel


def _accept_unsettled(kernel: OfNumba, writes: Sequence[bool]) -> None:
    """Have a kernel compiled for the types that `_settle` gives, and called with all for which it gives them."""
    compile_, accepted = kernel.compile, set()

    def compile_settled(arguments: tuple[OfNumba, ...]) -> OfNumba:
        settled = tuple(map(_settle_fields, arguments, writes))
        with global_compiler_lock:  # a type that was accepted twice would be looked up each time
            entry = compile_(settled)
            if arguments != settled and arguments not in accepted:
                accepted.add(arguments)
                kernel._insert([kind._code for kind in arguments], entry, False)  # noqa: SLF001, FBT003 - no objects
        return entry

    kernel.compile = compile_settled


def _settle_fields(kind: OfNumba, is_written: bool) -> OfNumba:  # noqa: FBT001 - of `map`
    """As `_settle`, the fields of a named tuple too; in a kernel numba cannot convert them."""
    if not isinstance(kind, types.BaseNamedTuple):
        return _settle(kind, is_written)
    named: OfNumba = kind
    writes = map(_is_written, map(named.instance_class.__annotations__.get, named.fields))
    settled = list(map(_settle_fields, named.types, writes))
    return types.BaseTuple.from_types(settled, named.instance_class)  # type: ignore[no-untyped-call]


def _find_settled(
    find: Callable[..., Any], writes: Sequence[bool], arguments: tuple[OfNumba, ...], keywords: dict[str, OfNumba]
) -> OfNumba:
    """Find the kernel that another calls with these types."""
    plain: Callable[[Any], Any] = types.unliteral
    return find(tuple(map(_settle, arguments, writes)), {name: plain(kind) for name, kind in keywords.items()})


def _settle(kind: OfNumba, is_written: bool) -> OfNumba:  # noqa: FBT001 - of `map`
    """Return the type for which a kernel is compiled that gets this one.

    Numba would compile `f(x, 0)` apart from `f(x, n)`. LLVM propagates constants anyway, where it inlines.
    """
    plain: OfNumba = types.unliteral(kind)  # type: ignore[no-untyped-call]
    if plain in types.signed_domain:
        return types.int64
    is_changed = isinstance(plain, types.Array) and plain.mutable and not is_written
    return plain.copy(readonly=True) if is_changed else plain


def _is_written(annotation: object) -> bool:
    return get_origin(annotation) is Annotated


def is_compiled(kernel: OfNumba) -> bool:
    """Return whether the disk cache of this installation holds a kernel, compiled from its present sources."""
    function = kernel.py_func
    name = f"*.{function.__name__}-*-{digest_sources(function.__module__)}.*.nbi"
    return any(Path(kernel.stats.cache_path).glob(name))
