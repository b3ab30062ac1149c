//! The library that called us: found, and checked symbol by symbol before anything of it is relied on.

use core::ffi::{c_int, c_void, CStr};
use core::mem::{size_of, transmute, transmute_copy};
use core::ops::Range;
use std::ffi::CString;
use std::sync::Mutex;

use crate::abi::{self, Constructor, Delete, GraphInfo, GraphInfoVtable, PlannerVtable};

/// What is known of a host library.
#[derive(Debug)]
pub struct Host {
    /// Its file.
    pub path: String,
    /// Its own planner's constructor.
    pub constructor: Option<Constructor>,
    /// All that our planner needs, or why ours cannot be used.
    pub layout: Result<Layout, String>,
    library: Option<Library>,
    base: usize,
}

/// A library whose layout was found to be the known one.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// Frees what the host's `operator new` gave.
    pub delete: Delete,
    /// The host's own planner's functions.
    pub planner: *const PlannerVtable,
    /// `typeinfo` of the host's planner, may be null.
    pub typeinfo: *const c_void,
    graph_info: *const GraphInfoVtable,
    external_context: *const c_void,
}

// SAFETY: all pointers are to functions and constant data of a library that is never unloaded (its handle is kept).
unsafe impl Send for Layout {}
// SAFETY: as above.
unsafe impl Sync for Layout {}
// SAFETY: a handle of the dynamic linker's, which may be used from any thread.
unsafe impl Send for Library {}
// SAFETY: as above.
unsafe impl Sync for Library {}

static HOSTS: Mutex<Vec<&'static Host>> = Mutex::new(Vec::new());

/// The library that holds the functions of `graph`, which is its own class and so the caller of the constructor.
///
/// # Safety
/// `graph` points to an object with a table of virtual functions.
pub unsafe fn of(graph: *const GraphInfo) -> Option<&'static Host> {
    // SAFETY: the contract.
    let table = unsafe { (*graph).vtable };
    // Asking the dynamic linker takes longer than making a small planner.
    let hosts = HOSTS.lock().unwrap_or_else(|e| e.into_inner());
    let known = hosts.iter().find(|h| h.layout.as_ref().is_ok_and(|l| l.graph_info == table)).copied();
    drop(hosts);
    known.or_else(|| at(table.cast()))
}

/// The library that an address lies in.
pub fn at(address: *const c_void) -> Option<&'static Host> {
    let (path, base) = library_of(address)?;
    let mut hosts = HOSTS.lock().unwrap_or_else(|e| e.into_inner());
    if let Some(known) = hosts.iter().find(|h| h.base == base) {
        return Some(known);
    }
    let host: &'static Host = Box::leak(Box::new(examine(&path, base)));
    hosts.push(host);
    Some(host)
}

/// The planner's constructor that a loaded library shows.
pub fn constructor_of(path: &str) -> Option<*mut c_void> {
    let path = CString::new(path).ok()?;
    // SAFETY: a terminated string; nothing is loaded that is not loaded already, so no code of it runs.
    let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOLOAD | libc::RTLD_LAZY) };
    if handle.is_null() {
        return None;
    }
    let name = CString::new(abi::CONSTRUCTOR).ok()?;
    // SAFETY: the handle is open and the name terminated. The handle's scope does not hold this library.
    let found = unsafe { libc::dlsym(handle, name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

/// Whether an address lies in this library.
pub fn is_ours(address: *const c_void) -> bool {
    let here = library_of(is_ours as *const c_void).map(|(_, base)| base);
    here.is_some() && here == library_of(address).map(|(_, base)| base)
}

/// What comes after this library under a name, in the order of the program's libraries.
pub fn next(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: a terminated name and the handle for what comes next.
    let found = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

fn library_of(address: *const c_void) -> Option<(CString, usize)> {
    // SAFETY: the struct is plain data.
    let mut info: libc::Dl_info = unsafe { core::mem::zeroed() };
    // SAFETY: any address may be asked about.
    let found = unsafe { libc::dladdr(address, &raw mut info) };
    if found == 0 || info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: `dladdr` gave a terminated string that lives as long as the library is loaded.
    let path = unsafe { CStr::from_ptr(info.dli_fname) };
    Some((path.to_owned(), info.dli_fbase as usize))
}

/// All addresses of the library that is loaded at `base`, empty where it cannot be told. Asked once: the dynamic linker
/// takes tens of microseconds to say which library an address is in, and there are some thirty symbols to look at.
fn addresses_of(base: usize) -> Range<usize> {
    struct Search {
        base: usize,
        found: Range<usize>,
    }
    unsafe extern "C" fn look(info: *mut libc::dl_phdr_info, _: usize, search: *mut c_void) -> c_int {
        // SAFETY: the linker passes a struct that is live during the call.
        let info = unsafe { &*info };
        // SAFETY: what `addresses_of` passed below.
        let search = unsafe { &mut *search.cast::<Search>() };
        if info.dlpi_phdr.is_null() {
            return 0;
        }
        // SAFETY: the library's table with that many rows.
        let rows = unsafe { core::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
        let loaded = || rows.iter().filter(|r| r.p_type == libc::PT_LOAD);
        let at = |offset| (info.dlpi_addr as usize).wrapping_add(usize::try_from(offset).unwrap_or(0));
        let start = loaded().map(|r| at(r.p_vaddr)).min().unwrap_or(0);
        let end = loaded().map(|r| at(r.p_vaddr).wrapping_add(r.p_memsz as usize)).max().unwrap_or(0);
        if !(start..end).contains(&search.base) {
            return 0;
        }
        search.found = start..end;
        1
    }
    let mut search = Search { base, found: 0..0 };
    // SAFETY: the callback's contract is kept: it gets our struct, which outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut search).cast()) };
    search.found
}

fn examine(path: &CStr, base: usize) -> Host {
    let text = path.to_string_lossy().into_owned();
    // SAFETY: a terminated string; nothing is loaded that is not loaded already, so no code of it runs.
    let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOLOAD | libc::RTLD_LAZY) };
    if handle.is_null() {
        let layout = Err("it cannot be opened again".into());
        return Host { path: text, constructor: None, layout, library: None, base };
    }
    let library = Library { handle, addresses: addresses_of(base) };
    // The handle's own scope begins with the library itself, so this is not our function of the same name.
    let constructor = library.own(abi::CONSTRUCTOR).map(|p| {
        // SAFETY: the mangled name states the signature.
        unsafe { transmute::<*mut c_void, Constructor>(p) }
    });
    Host { path: text, constructor, layout: library.layout(), library: Some(library), base }
}

#[derive(Debug)]
struct Library {
    handle: *mut c_void,
    /// Where it is loaded.
    addresses: Range<usize>,
}

impl Library {
    fn symbol(&self, name: &str) -> Option<*mut c_void> {
        let name = CString::new(name).ok()?;
        // SAFETY: the handle is open and stays so; the name is terminated.
        let found = unsafe { libc::dlsym(self.handle, name.as_ptr()) };
        (!found.is_null()).then_some(found)
    }

    /// A symbol that the library itself defines.
    fn own(&self, name: &str) -> Option<*mut c_void> {
        self.symbol(name).filter(|&p| self.addresses.contains(&(p as usize)))
    }

    fn layout(&self) -> Result<Layout, String> {
        if !cfg!(all(target_os = "linux", target_pointer_width = "64")) {
            return Err("only 64-bit Linux is known".into());
        }
        let planner = self.table("_ZTVN6tflite12ArenaPlannerE", &abi::PLANNER)?;
        let graph_info = self.table("_ZTVN6tflite15InterpreterInfoE", &abi::GRAPH_INFO)?;
        // In-place flags are part of a registration since the planner has this function.
        self.own("_ZN6tflite12ArenaPlanner22IdentifyInPlaceTensorsEv").ok_or("its planner has no in-place sharing")?;
        let delete = self.symbol("_ZdlPv").ok_or("it has no operator delete")?;
        Ok(Layout {
            // SAFETY: the mangled name states the signature.
            delete: unsafe { transmute::<*mut c_void, Delete>(delete) },
            planner: planner.cast(),
            typeinfo: self.own("_ZTIN6tflite12ArenaPlannerE").unwrap_or(core::ptr::null_mut()),
            graph_info: graph_info.cast(),
            external_context: self.own(abi::EXTERNAL_CONTEXT).unwrap_or(core::ptr::null_mut()),
        })
    }

    /// The functions of a class, if they are exactly those named, in that order.
    fn table(&self, name: &str, functions: &[&str]) -> Result<*const usize, String> {
        let table = self.own(name).ok_or_else(|| format!("it does not show {name}"))?.cast::<usize>();
        let bytes = symbol_size(table.cast()).ok_or_else(|| format!("the size of {name} is unknown"))?;
        // Two words stand before the functions.
        if bytes != (functions.len() + 2) * size_of::<usize>() {
            return Err(format!("{name} has {bytes} bytes, not {}", (functions.len() + 2) * size_of::<usize>()));
        }
        let table = table.wrapping_add(2);
        for (i, function) in functions.iter().enumerate() {
            // SAFETY: inside the symbol's size, just compared.
            let entry = unsafe { *table.wrapping_add(i) };
            if self.own(function).map(|p| p as usize) != Some(entry) {
                return Err(format!("function {i} of {name} is not {function}"));
            }
        }
        Ok(table)
    }
}

/// The fields of `Elf64_Sym` up to the size.
#[repr(C)]
struct Symbol {
    name: u32,
    info: u8,
    other: u8,
    section: u16,
    value: u64,
    size: u64,
}

fn symbol_size(address: *const c_void) -> Option<usize> {
    type Dladdr1 = unsafe extern "C" fn(*const c_void, *mut libc::Dl_info, *mut *const Symbol, c_int) -> c_int;
    const RTLD_DL_SYMENT: c_int = 1;
    // Asked for at run time: not every C library has it.
    // SAFETY: a terminated name and the handle for all libraries.
    let dladdr1 = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"dladdr1".as_ptr()) };
    if dladdr1.is_null() {
        return None;
    }
    // SAFETY: the function's documented signature.
    let dladdr1: Dladdr1 = unsafe { transmute_copy(&dladdr1) };
    // SAFETY: plain data.
    let mut info: libc::Dl_info = unsafe { core::mem::zeroed() };
    let mut symbol: *const Symbol = core::ptr::null();
    // SAFETY: both outputs are writable.
    let found = unsafe { dladdr1(address, &raw mut info, &raw mut symbol, RTLD_DL_SYMENT) };
    if found == 0 || symbol.is_null() || info.dli_saddr.cast_const() != address {
        return None;
    }
    // SAFETY: a symbol of a loaded library.
    usize::try_from(unsafe { (*symbol).size }).ok()
}

impl Layout {
    /// A number that the subgraphs of one interpreter share; 0 where it cannot be told.
    ///
    /// # Safety
    /// `context` is the context of a graph that was verified.
    pub unsafe fn interpreter(&self, context: *mut abi::Context) -> usize {
        // SAFETY: the contract.
        let get = unsafe { (*context).external_context };
        match get {
            // A context that has another function there is laid out in another way.
            Some(get) if get as usize == self.external_context as usize => {
                // SAFETY: the host's own function on its own context.
                unsafe { get(context, abi::CPU_BACKEND) as usize }
            }
            _ => 0,
        }
    }
}

impl Host {
    /// What a name means to this library and those that it names, never this one of ours.
    pub fn symbol(&self, name: &str) -> Option<*mut c_void> {
        self.library.as_ref()?.symbol(name)
    }

    /// Whether `graph` of `context` is laid out as known; else why not.
    ///
    /// # Safety
    /// `graph` is the host's graph and `context` its context, as passed to the constructor.
    pub unsafe fn verify(&self, graph: *mut GraphInfo, context: *const abi::Context) -> Result<Layout, String> {
        let layout = self.layout.clone()?;
        // SAFETY: the contract.
        if unsafe { (*graph).vtable } != layout.graph_info {
            return Err("the graph is not an InterpreterInfo".into());
        }
        // SAFETY: the graph has the functions just compared.
        unsafe { crate::tables::verify(graph, context) }?;
        Ok(layout)
    }
}
