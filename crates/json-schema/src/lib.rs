//! Lets types name `JsonSchema` among their derives, although only the tests need schemars.

use proc_macro::TokenStream;

/// Creates no code. In tests, the derive of schemars replaces this one: see `report/mod.rs`.
#[proc_macro_derive(JsonSchema)]
pub fn json_schema(_: TokenStream) -> TokenStream {
    TokenStream::new()
}
